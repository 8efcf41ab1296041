"""Covering and overlap, decided by comparing what two filters say of each attribute."""
