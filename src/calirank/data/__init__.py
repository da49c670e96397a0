"""Ranking data: lists of documents with features and supervision, and the formats they come in."""
