package importer

import _ "github.com/rlx-go/rlx/internal/ballast"
