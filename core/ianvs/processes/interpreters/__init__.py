"""Plugin objects in other interpreters: a worker there, which needs only numpy, and proxies in this process."""
