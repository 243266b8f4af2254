"""What must wait at a peer, worked out by itself: of each sender one model and its mass, where all have room."""


class Inbox:
    def __init__(self, keep):
        self.keep = keep
        self.waiting = {}  # sender -> (mass, payload)
        self.taken = {}
        self.again = {}  # sender -> payload that came with no mass while the event ran

    def accept(self, sender, share, payload):
        mass, _ = self.waiting.get(sender, (0, None))
        if share:
            self.waiting[sender] = (share + mass * self.keep, payload)
        elif mass and self.keep:
            self.waiting[sender] = (mass, payload)
        elif not mass:
            self.again[sender] = payload

    def begin(self):
        self.taken, self.waiting, self.again = self.waiting, {}, {}
        return self.taken

    def abort(self):
        for sender, (mass, payload) in self.taken.items():
            if sender in self.waiting:
                newer, model = self.waiting[sender]
                self.waiting[sender] = (newer + mass * self.keep, model)
            else:
                self.waiting[sender] = (mass, self.again.get(sender, payload) if self.keep else payload)
        self.taken = {}

    def finish(self):
        self.taken = {}
