"""`python -m tests.runtime.newer peer ...`: pushcen as its next minor version may be, which says more than this one."""

from pushcen.cli import app


def install():
    import pushcen
    from pushcen.runtime import node, wire

    pushcen.__version__ = "0.2.0"
    wire.MINOR = node.MINOR = wire.MINOR + 1
    hello = node.PeerNode.hello

    def more(self, *arguments, **options):
        said = hello(self, *arguments, **options)
        return type(said).FromString(said.SerializeToString() + b"\xc2\x3e\x05extra")  # field 1000

    node.PeerNode.hello = more


if __name__ == "__main__":
    install()
    app()
