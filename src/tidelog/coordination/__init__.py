"""What coordinators are built on: state that lives in a partition of an internal topic and moves with its leader."""
