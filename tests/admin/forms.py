"""Read a confirmation page, and send what its form would send."""

import re
from html import unescape

from django.contrib.messages import get_messages


def _form(text):
    return text.partition('<div id="content-main"')[2].partition('<form method="post"')[2]


def hidden_fields(text):
    """What the confirmation would send back."""
    data = {}
    for name, value in re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', _form(text)):
        data.setdefault(name, []).append(unescape(value))
    return data


def send(client, confirmation):
    """Send the form of a confirmation as it is; the response."""
    text = confirmation.content.decode()
    given = re.match(r' action="(.*?)"', _form(text))
    url = unescape(given[1]) if given else confirmation.wsgi_request.get_full_path()
    return client.post(url, hidden_fields(text))


def said(response):
    """The messages of a response, in order."""
    return [str(message) for message in get_messages(response.wsgi_request)]
