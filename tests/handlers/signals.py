"""An ownership signal that a test sets by hand."""


class ScriptedSignal:
    def __init__(self):
        self.is_expired = False
        self.reason = None
        self.advances = 0

    def expired(self):
        return self.is_expired

    def stop_reason(self):
        return self.reason

    def advanced(self):
        self.advances += 1
