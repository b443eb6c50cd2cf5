"""The console: a web page that shows the database at work, served by the HTTP listener at `/`."""
