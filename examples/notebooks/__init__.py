"""Notebooks for PC and board; ``pynq get-notebooks rasna`` copies them on a board."""
