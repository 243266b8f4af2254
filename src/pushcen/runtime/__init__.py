"""The real network: the Clients of the simulator as processes that know each other only through gRPC.

Here live certificates and signed records, the durable ledger, membership, the wire's messages, and the driver that
lets a Client train, receive and push. Mass, models and methods do not: this package moves what they make.
"""
