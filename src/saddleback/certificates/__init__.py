"""Certificates of points and of rays: pure functions of a problem."""
