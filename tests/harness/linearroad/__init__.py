"""Linear Road's judge: the rules in plain Python, and the comparison of answers with them."""
