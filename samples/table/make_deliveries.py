"""Makes deliveries.csv: 240 invented parcels, and whether each came late. Their weight is missing in some rows.

    python samples/table/make_deliveries.py
"""
import pathlib
import random

SLOWER = {"bike": -1.5, "drone": -3.0, "truck": 0.5, "van": 1.5}
random.seed(1)
lines = ["order,distance,weight,stops,carrier,late"]
for order in range(1001, 1241):
    distance, weight, stops = random.uniform(1, 60), random.lognormvariate(1, 0.8), random.randint(1, 9)
    carrier = random.choice(sorted(SLOWER))
    late = SLOWER[carrier] + (distance - 30) / 12 + (stops - 5) / 2 + weight / 8 + random.gauss(0, 0.5) > 0
    lines.append("%d,%.1f,%s,%d,%s,%s" % (order, distance, "" if order % 19 == 0 else "%.1f" % weight, stops, carrier,
                                          "yes" if late else "no"))
(pathlib.Path(__file__).parent / "deliveries.csv").write_text("\n".join(lines) + "\n")
