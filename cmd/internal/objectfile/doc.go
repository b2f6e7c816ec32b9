// SPDX-License-Identifier: Apache-2.0

// Package objectfile reads files that users pass to commands. Each file must contain one object. An unknown or
// duplicate field is an error. Errors contain no values of the object, because these may be secret.
//
//	di := &lsv1alpha1.DeployItem{}
//	err := objectfile.Read("item.yaml", os.Stdin, objectfile.DeployItem, di)
package objectfile
