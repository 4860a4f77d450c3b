"""The distributed line under fire: consumers, broker and database are killed, and what is left is compared."""
