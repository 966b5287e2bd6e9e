"""What programs lay beside their records: the features.json of TensorFlow Datasets (TFDS).

``from_tfds`` gives the specification of what is stored. Of a node of the file, a feature,
``tensor_content`` is what a Tensor or Audio says of itself and ``sizes_of`` the shape in it;
``is_encoded`` says whether its values are stored as bytes, ``encoding_of`` how, and ``is_dynamic``
whether their shapes lie beside them; ``parts_of_translation`` are the keys below one. ``modern``
makes such nodes of those that TFDS wrote before 4.6, ``to_tfds`` of a specification.
"""

from tfwire._parsing.schema_tfds import (
    encoding_of as encoding_of,
    from_tfds as from_tfds,
    is_dynamic as is_dynamic,
    is_encoded as is_encoded,
    modern as modern,
    parts_of_translation as parts_of_translation,
    sizes_of as sizes_of,
    tensor_content as tensor_content,
    to_tfds as to_tfds,
)
