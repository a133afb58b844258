"""The verifier: real clients write and read while nodes are killed and paused; then all that was promised is checked.

judge.py      what must hold between ledger, final log, what consumers saw, and the replicas' files
workload.py   the clients: confluent-kafka on both sides, never our own
cluster.py    the nodes as processes of our own: kill, pause, restart
faults.py     what is broken when: drawn from one seed
gaps.py       how long nothing was acknowledged, fault by fault
files.py      the replicas' segment files, batch by batch
run.py        a whole run from start to report
"""
