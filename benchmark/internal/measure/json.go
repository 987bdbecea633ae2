package measure

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteJSON writes v to a file as JSON, unless path is "". Links and devices like /dev/stdout are written
// to, not replaced.
func WriteJSON(path string, v any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // results are to be read
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
