package measure

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteJSON writes v to a file as JSON. Links and devices like /dev/stdout are written
// to, not replaced.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // results are to be read
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
