"""What every part of the library uses: array types, argument checks, cached properties, rebuildable objects."""
