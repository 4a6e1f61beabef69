"""From confidential data and draws to a synthesizer, and from that to a release."""
