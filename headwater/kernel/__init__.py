"""Plans → Arrow: Spark, the Java under it, and staging of rows for both."""
