"""The strictest policy that a page of the admin has to live with."""

POLICY = "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"


class StrictPolicy:
    """Send it with every answer. Written out, since Django has its own only from 6.0 on."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        response["Content-Security-Policy"] = POLICY
        return response
