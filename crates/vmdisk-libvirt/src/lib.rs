//! libvirt domain XML, read with places and written back.
