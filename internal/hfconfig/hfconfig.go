// Package hfconfig reads the fields that all config.json files of Hugging Face share, for the
// packages that build models from them: ir/lm and ir/models.
package hfconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rlx-go/rlx/ir"
)

// Err is the kind of the errors for a description of a model that is malformed or out of range.
var Err = errors.New("bad model configuration")

// maxBytes bounds the bytes of a config.json.
const maxBytes = 16 << 20

// Read returns the bytes of a config.json. The error is of kind [Err] for one that is too long, or that of r.
func Read(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("%w: config.json is longer than %d bytes", Err, maxBytes)
	}
	return data, err
}

// Parse reads the fields of into. The error is of kind [Err].
func Parse(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: config.json: %w", Err, err)
	}
	return nil
}

// Windowed reads layer_types: which layers have a window. The error is of kind [ir.ErrUnsupported] for a
// type of another name.
func Windowed(types []string) ([]bool, error) {
	windowed := make([]bool, len(types))
	for i, t := range types {
		if t != "sliding_attention" && t != "full_attention" {
			return nil, ir.Errorf(ir.ErrUnsupported, "layer_types[%d] is %q: it must be sliding_attention or full_attention", i, t)
		}
		windowed[i] = t == "sliding_attention"
	}
	return windowed, nil
}
