"""Plugin objects in other interpreters: a worker there that needs only numpy, and proxies in this process."""
