package safetensors

import (
	"fmt"
	"io"
	"os"

	"github.com/rlx-go/rlx/internal/wholefile"
	"github.com/rlx-go/rlx/native"
)

// ReadFile reads the file of a name, like [Read].
func ReadFile(name string) (tensors map[string]native.Tensor, metadata map[string]string, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	if tensors, metadata, err = Decode(data); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return tensors, metadata, err
}

// WriteFile writes a file like [Write], atomically: even if the process is killed or the power
// fails, the file is the old one or the new one. It writes a temporary file in the same folder and
// renames it. It keeps the permissions of an existing file and follows links, also to a missing
// file. Only a killed process leaves its temporary file, ".rlx-H-N.tmp" with a hash H of the name;
// a later WriteFile to the same name removes it after an hour.
func WriteFile(name string, tensors map[string]native.Tensor, metadata map[string]string) error {
	return wholefile.Replace(name, func(w io.Writer) error { return Write(w, tensors, metadata) })
}
