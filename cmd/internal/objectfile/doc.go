// SPDX-License-Identifier: Apache-2.0

// Package objectfile reads files that hold one object, as commands get them from their users. It is strict: a field that
// does not exist, or is there twice, is an error. Errors show none of the values, for they may be secret.
//
//	di := &lsv1alpha1.DeployItem{}
//	err := objectfile.Read("item.yaml", os.Stdin, objectfile.DeployItem, di)
package objectfile
