package httpguard

import (
	"encoding/json"
	"unicode/utf8"
)

// values are the values of a header, which may have any encoding: values that are no text in
// JSON are stored as bytes.
type values []string

type valuesAsBytes struct {
	Bytes [][]byte `json:"bytes"`
}

func (v values) MarshalJSON() ([]byte, error) {
	var raw valuesAsBytes
	text := true
	for _, value := range v {
		raw.Bytes = append(raw.Bytes, []byte(value))
		text = text && utf8.ValidString(value)
	}
	if text {
		return json.Marshal([]string(v))
	}
	return json.Marshal(raw)
}

func (v *values) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, (*[]string)(v))
	}
	var raw valuesAsBytes
	err := json.Unmarshal(data, &raw)
	for _, value := range raw.Bytes {
		*v = append(*v, string(value))
	}
	return err
}
