# SPDX-License-Identifier: Apache-2.0
"""registry_rules.py URL LEVEL: sets a schema registry's global compatibility; waits until it answers."""
import json
import sys
import time
import urllib.error
import urllib.request

url, level = sys.argv[1:]
request = urllib.request.Request(
    url + "/config", method="PUT", data=json.dumps({"compatibility": level}).encode(),
    headers={"Content-Type": "application/vnd.schemaregistry.v1+json"})
for _ in range(120):
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            print(f"{url}: {answer.read().decode()}")
            break
    except urllib.error.HTTPError as e:
        sys.exit(f"{url}: {e.code} {e.read(500).decode(errors='replace')}")
    except OSError:
        time.sleep(1)  # not up yet
else:
    sys.exit(f"{url}: no answer for two minutes")
