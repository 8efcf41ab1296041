"""CTPS: concept trees in publish/subscribe (Zhang, Wang, Huang, Yung 2022), Figures 7 and 8."""
