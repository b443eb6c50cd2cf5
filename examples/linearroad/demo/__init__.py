"""`headwater demo`: the application with traffic on it, in the terminal and in the browser."""
