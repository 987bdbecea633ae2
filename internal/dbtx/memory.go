package dbtx

import "github.com/belaygo/belay/internal/dbtx/protected"

// Memory is what the attempts of one operation saw first of the rows that its key
// protects; see [protected.Memory].
type Memory = protected.Memory
