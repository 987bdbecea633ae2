package measure

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteJSON writes v to a file as JSON, unless path is "". A file that is there is replaced
// when the new one is whole; links, and devices like /dev/stdout, are written to.
func WriteJSON(path string, v any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := replace(path, append(text, '\n')); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func replace(path string, text []byte) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, text, 0o644) //nolint:gosec // results are to be read
	}
	part := path + ".part"
	if err := os.WriteFile(part, text, 0o644); err != nil { //nolint:gosec // likewise
		return err
	}
	return os.Rename(part, path)
}
