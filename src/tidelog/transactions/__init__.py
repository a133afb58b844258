"""The transaction coordinator: who may write under a transactional id, and whether a transaction ended one way or the
other (KIP-98, KIP-360, KIP-588, KIP-890).
"""
