"""Who may take part: the authority, its certificates and signed records, and whom a peer trusts."""
