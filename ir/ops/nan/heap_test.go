package nan_test

import _ "github.com/rlx-go/rlx/internal/ballast"
