"""The poset text (Tarkoma, section 3.7): forest, poset and counting side by side, and what a deadline costs."""
