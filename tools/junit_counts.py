#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" of a JUnit report, and on stderr why tests were skipped."""

import re
import sys
import xml.etree.ElementTree as ElementTree

counts = {"passed": 0, "failed": 0, "skipped": 0}
for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    status = case.get("status")
    if status == "run":
        counts["passed"] += 1
    elif status in ("notrun", "disabled"):
        counts["skipped"] += 1
        output = case.findtext("system-out") or ""
        reason = re.search(r"(?m)^.*: Skipped\n(.*)$", output)
        why = reason.group(1) if reason else case.find("skipped").get("message")
        print(f"skipped: {case.get('name')}: {why}", file=sys.stderr)
    else:
        counts["failed"] += 1
print(counts["passed"], counts["failed"], counts["skipped"])
