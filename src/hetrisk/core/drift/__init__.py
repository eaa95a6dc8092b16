"""After the fit: what training rows looked like, and how far later ones have moved."""
