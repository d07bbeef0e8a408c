"""Expressions bound: ``binding`` dispatches, the others are its handlers and what they share."""
