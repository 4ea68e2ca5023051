// Package dataset reads training examples from files: CSV, IDX, folders of images, and files of
// tokens. Its results are tensors, or batches for rlx.Loop.Data. Errors of a file's contents are of
// kind [ErrDamaged]; others are those of the file system. Memory is proportional to the size of the
// file, whatever its header says.
//
// No package of the compiler knows of it. Each format has a file of its name; start reading at csv.go.
package dataset

import (
	"errors"
	"fmt"
)

// ErrDamaged is the kind of the errors for files that are not of their format.
var ErrDamaged = errors.New("damaged data file")

func damagedf(text string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(text, args...))
}
