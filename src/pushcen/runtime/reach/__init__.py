"""How a peer that nobody can dial takes part: through members that it has dialled, and that carry bytes to it."""
