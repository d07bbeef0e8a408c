"""Binding of expressions: ``binding`` dispatches to the handlers in the other modules."""
