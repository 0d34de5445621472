//! `.beam` bytes to checked modules and specific code.
