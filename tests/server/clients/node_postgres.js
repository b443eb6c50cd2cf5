// The script that every client runs, with node-postgres: node node_postgres.js HOST PORT
// Prints one JSON object of what it saw; the test compares it.
const { Client } = require("pg");

async function main(host, port) {
  const client = new Client({ host, port: Number(port), user: "tester", database: "headwater" });
  await client.connect();
  const seen = {};
  await client.query(
    "CREATE TABLE t (a INT, b STRING, c DOUBLE, d TIMESTAMP, e DECIMAL(10, 2), f BOOLEAN," +
      " g DATE, h BINARY, i BIGINT)",
  );
  const row = [
    1, 'it\'s \\ "x"', 1.5, new Date("2024-01-01T00:00:00Z"), "1.25", true, "2024-02-29",
    Buffer.from([0, 97]), "1099511627776",
  ];
  const places = row.map((_, n) => `$${n + 1}`).join(", ");
  seen.inserted = (await client.query(`INSERT INTO t VALUES (${places})`, row)).rowCount;
  const found = (await client.query("SELECT * FROM t WHERE a = $1", [1])).rows[0];
  found.d = found.d.toISOString();
  found.g = [found.g.getFullYear(), found.g.getMonth() + 1, found.g.getDate()];
  found.h = found.h.toString("hex");
  seen.row = found;
  const named = { name: "by_a", text: "SELECT b FROM t WHERE a = $1", rowMode: "array" };
  seen.prepared = [];
  for (const a of [0, 1, 1]) {
    seen.prepared.push((await client.query({ ...named, values: [a] })).rows);
  }
  await client.query("BEGIN");
  await client.query("INSERT INTO t (a) VALUES ($1)", [2]);
  await client.query("ROLLBACK");
  await client.query("BEGIN");
  await client.query("INSERT INTO t (a) VALUES ($1)", [3]);
  await client.query("COMMIT");
  seen.a = (await client.query("SELECT a FROM t ORDER BY a")).rows.map((r) => r.a);
  await client.query("CREATE STREAMING TABLE s (k INT)");
  await client.query("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k");
  seen.view = [];
  for (let number = 1; number <= 3; number++) {
    await client.query("INSERT INTO s VALUES (7)");
    for (let again = 0; again < 3; again++) {
      const asked = { name: "view", text: "SELECT n FROM v", rowMode: "array" };
      seen.view.push((await client.query(again ? asked : asked.text)).rows.flat().flatMap(values));
    }
  }
  try {
    await client.query("SELECT *\nFROM nowhere WHERE a = $1", [1]);
  } catch (error) {
    seen.error = { code: error.code, position: error.position };
  }
  seen.after = (await client.query("SELECT 1 AS one")).rows;
  await client.end();
  console.log(JSON.stringify(seen));
}

function values(cell) {
  return cell !== null && typeof cell === "object" ? Object.values(cell) : [cell];
}

main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(error);
  process.exit(1);
});
