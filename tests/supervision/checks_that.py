"""Liveness checks that a project might have written."""


def fail_for_host_x(expected_owner, context):
    """Break for the owners of one host and call everybody else dead."""
    if expected_owner.host_id == "host-x":
        raise RuntimeError("this check is broken")
    return False
