"""Evaluation: many metrics in one pass, how sure the means are, and whether one ranking is better than another."""
