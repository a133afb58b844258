"""One node's replicas: roles, high watermark, log directories, and the requests that wait on them."""
