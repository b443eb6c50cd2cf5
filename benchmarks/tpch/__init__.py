"""TPC-H with lineitem as a stream: five views (split maintenance §4.2; B6)."""
