"""torch.distributed as one rank of a job that never starts: it hands out groups and counts them."""
import importlib
import math

from standins import Instance


class Group(Instance):
    def __init__(self, ranks, rank):
        self.ranks, self.own = list(ranks), rank

    def size(self):
        return len(self.ranks)

    def rank(self):
        return self.ranks.index(self.own) if self.own in self.ranks else -1


class Mesh:
    """torch.distributed.device_mesh.DeviceMesh: dimensions with a group each."""

    def __init__(self, named, shape=()):
        self.named, self.shape = named, shape
        self.mesh_dim_names, self.ndim = tuple(named), len(named)

    @classmethod
    def from_group(cls, group, device_type, mesh=None, mesh_dim_names=(), **_):
        groups = group if isinstance(group, list) else [group]
        sizes = [len(mesh), len(mesh[0])] if len(groups) == 2 else [one.size() for one in groups]
        assert [one.size() for one in groups] == sizes, "a mesh of other sizes than its groups"
        return cls(dict(zip(mesh_dim_names, groups)))

    def __getitem__(self, names):
        names = (names,) if isinstance(names, str) else names
        return Mesh({name: self.named[name] for name in names})

    def get_group(self, name=None):
        return self.named[name] if name else next(iter(self.named.values()))

    def get_all_groups(self):
        return list(self.named.values())

    def size(self, dim=None):
        sizes = [group.size() for group in self.named.values()]
        return sizes[dim] if dim is not None else math.prod(sizes)


def fill(torch, num_ranks, rank):
    """Makes torch.distributed say that it is rank `rank` of `num_ranks`."""
    world = Group(range(num_ranks), rank)
    counts = {"groups": 0}

    def new_group(ranks=None, **_):
        counts["groups"] += 1
        assert len(set(ranks)) == len(ranks) and all(0 <= r < num_ranks for r in ranks), \
            f"a group of ranks {ranks} in a job of {num_ranks}"
        return Group(ranks, rank)

    def all_gather_object(into, value, group=None):
        into[:] = [value] * len(into)

    dist = torch.distributed
    dist.all_gather_object = all_gather_object
    dist.is_available = lambda: True
    dist.is_initialized = lambda: True
    dist.get_rank = lambda group=None: (group or world).rank()
    dist.get_world_size = lambda group=None: (group or world).size()
    dist.get_process_group_ranks = lambda group=None: list((group or world).ranks)
    dist.new_group = new_group
    dist.get_backend = lambda group=None: "nccl"
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    for name in ("is_initialized", "get_rank", "get_world_size", "new_group", "get_backend",
                 "get_process_group_ranks"):
        setattr(c10d, name, getattr(dist, name))
    return counts


def init_mesh(torch, num_ranks, rank):
    """init_device_mesh of a job of num_ranks, the last dimension being the nearest ranks."""
    fill(torch, num_ranks, rank)

    class Whole(Mesh):
        def __init__(self, named, sizes):
            super().__init__(named)
            self.sizes = sizes

        def __getitem__(self, names):
            names = (names,) if isinstance(names, str) else tuple(names)
            for name in names:
                if name not in self.named:
                    raise KeyError(f"Invalid mesh_dim_name {name} of {list(self.named)}")
            part = Whole({name: self.named[name] for name in names}, self.sizes)
            part.flat = self.flat
            return part

        def _flatten(self, mesh_dim_name=None):
            size = math.prod(group.size() for group in self.named.values())
            self.flat[mesh_dim_name] = Group(range(size), 0)
            return self

        def get_local_rank(self, name=None):
            return 0

        def get_coordinate(self):
            return [0] * self.ndim

    def init_device_mesh(device_type, mesh_shape, mesh_dim_names=()):
        assert math.prod(mesh_shape) == num_ranks, f"a mesh {mesh_shape} of {num_ranks} ranks"
        named, below = {}, 1
        for size, name in reversed(list(zip(mesh_shape, mesh_dim_names))):
            named[name] = Group(range(0, size * below, below), rank)
            below *= size
        mesh = Whole(dict(reversed(list(named.items()))), mesh_shape)
        mesh.flat = mesh.named  # flattened dimensions are found beside the others
        mesh.ndim = len(mesh_shape)
        return mesh

    return init_device_mesh
