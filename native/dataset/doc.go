// Package dataset reads examples for training from files: CSV, IDX, folders of images, and files of
// tokens. Its results are tensors, or batches in the form of rlx.Loop.Data. Files are data from
// elsewhere: errors are of kind [ErrDamaged] or those of the file system, and memory is in proportion
// to what is read.
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
