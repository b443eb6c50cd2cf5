"""One cold start of Headwater, in a process of its own; prints seconds since the process began."""

import json
import sys
import time

import headwater

began, folder, what = float(sys.argv[1]), sys.argv[2], sys.argv[3]
QUERY = "SELECT d.name, sum(f.v) AS v FROM f JOIN d ON f.k = d.k GROUP BY d.name ORDER BY d.name"

with headwater.connect(folder) as db:
    if what == "insert":
        db.sql("INSERT INTO f VALUES (1, 2)")
        print(json.dumps({"seconds": time.time() - began}))
    else:
        rows = db.sql(QUERY).rows()
        print(json.dumps({"seconds": time.time() - began, "rows": rows}))
